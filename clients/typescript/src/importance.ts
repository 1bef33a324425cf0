/** Importance, as a level and as a score. A memory may have either; the other is derived. */

import { ImportanceLevel } from './vocabulary.js';

const SCORES: Readonly<Record<ImportanceLevel, number>> = { low: 0.25, medium: 0.5, high: 0.75, critical: 0.95 };

/** The score of a level: .25, .5, .75 or .95. Throws a RangeError for any other word. */
export function importanceToScore(level: ImportanceLevel): number {
  if (!Object.hasOwn(SCORES, level)) throw new RangeError(`an importance is one of ${Object.keys(SCORES).join(', ')}`);
  return SCORES[level];
}

/** The level of a score: critical from .9 on, high from .6, medium from .3, else low. Throws a RangeError outside 0 to 1. */
export function scoreToImportance(score: number): ImportanceLevel {
  if (!(score >= 0 && score <= 1)) throw new RangeError(`an importance score is 0 to 1, not ${score}`);
  if (score >= 0.9) return ImportanceLevel.CRITICAL;
  if (score >= 0.6) return ImportanceLevel.HIGH;
  return score >= 0.3 ? ImportanceLevel.MEDIUM : ImportanceLevel.LOW;
}

/** A level, a score, or both. */
export interface Importance {
  /** How much it matters. */
  importance?: ImportanceLevel;
  /** The same as a number of 0 to 1. */
  importance_score?: number;
}

/**
 * Both from either; neither from neither. Throws a RangeError if they disagree, or if one is none of its scale.
 */
export function settleImportance({ importance, importance_score: score }: Importance): Importance {
  if (score === undefined)
    return importance === undefined ? {} : { importance, importance_score: importanceToScore(importance) };
  const level = scoreToImportance(score);
  if (importance !== undefined && importance !== level) {
    throw new RangeError(`the score ${score} is ${level}, but the importance is ${importance}; give one of them`);
  }
  return { importance: level, importance_score: score };
}
