/** What the daemon needs beside the bundle: each file compressed, a table of them all, and the licences. */

import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/** Directories of the packages that are in the page or in a worker. */
const packages = new Set<string>();

/** Notes which packages a bundle has: a worker's is made before the page's. */
export function noted(): Plugin {
  return {
    name: 'noted',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue;
        for (const id of chunk.moduleIds) {
          const found = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(id.replace(/^\0/, ''));
          if (found?.[1]) packages.add(found[1]);
        }
      }
    },
  };
}

/** Writes `licences.txt` into the bundle, and `*.gz` and `files.rs` beside it. */
export function embedded(): Plugin {
  return {
    name: 'embedded',
    async generateBundle() {
      const texts = await Promise.all([...packages].sort().map(licence));
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: texts.join(`\n${'-'.repeat(72)}\n\n`) });
    },
    async writeBundle({ dir }) {
      if (dir !== undefined) await table(dir);
    },
  };
}

async function licence(directory: string): Promise<string> {
  const about = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as Record<string, string>;
  const file = (await readdir(directory)).find((name) => /^licen[cs]e/i.test(name));
  if (file === undefined) throw new Error(`${about['name']} has no licence`);
  const text = await readFile(join(directory, file), 'utf8');
  return `${about['name']} ${about['version']} (${about['license']})\n\n${text.trim()}\n`;
}

async function table(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => extname(name) in TYPES).sort();
  const rows = await Promise.all(
    names.map(async (name) => {
      const content = await readFile(join(directory, name));
      const packed = gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
      await writeFile(join(directory, `${name}.gz`), packed);
      const sum = createHash('sha256').update(content).digest('hex').slice(0, 32);
      return `    File {
        name: "${name}",
        content_type: "${TYPES[extname(name)]}",
        sum: "${sum}",
        plain: include_bytes!("${name}"),
        gzip: include_bytes!("${name}.gz"),
    },`;
    }),
  );
  await writeFile(
    join(directory, 'files.rs'),
    `// Made by \`make console\`; edits are lost.\n&[\n${rows.join('\n')}\n]\n`,
  );
}
