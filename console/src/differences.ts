/** What changed between two texts, by lines: the longest common subsequence (Wagner and Fischer 1974). */

export interface Line {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** Lines that are compared; of longer texts the rest counts as replaced. */
const MOST = 400;
/** Unchanged lines that are shown beside a change. */
const AROUND = 2;

export function differences(before: string, after: string): Line[] {
  const [old, young] = [before.split('\n'), after.split('\n')];
  const [one, two] = [old.slice(0, MOST), young.slice(0, MOST)];
  const width = two.length + 1;
  const lengths = new Uint16Array((one.length + 1) * width);
  const at = (row: number, column: number) => lengths[row * width + column] ?? 0;
  for (let row = one.length - 1; row >= 0; row -= 1) {
    for (let column = two.length - 1; column >= 0; column -= 1) {
      lengths[row * width + column] =
        one[row] === two[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: Line[] = [];
  let [row, column] = [0, 0];
  while (row < one.length || column < two.length) {
    if (row < one.length && column < two.length && one[row] === two[column]) {
      lines.push({ kind: 'same', text: one[row] ?? '' });
      row += 1;
      column += 1;
    } else if (column >= two.length || (row < one.length && at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ kind: 'removed', text: one[row] ?? '' });
      row += 1;
    } else {
      lines.push({ kind: 'added', text: two[column] ?? '' });
      column += 1;
    }
  }
  lines.push(...old.slice(MOST).map((text): Line => ({ kind: 'removed', text })));
  lines.push(...young.slice(MOST).map((text): Line => ({ kind: 'added', text })));
  return lines.filter((line, index) => {
    if (line.kind !== 'same') return true;
    return lines.slice(Math.max(0, index - AROUND), index + AROUND + 1).some((near) => near.kind !== 'same');
  });
}
