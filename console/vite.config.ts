import { defineConfig } from 'vite';

import { embedded, noted } from './scripts/embedded.ts';

/** Names without sums: the daemon tells each file's tag, and nothing is left of files that are no more. */
export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  worker: { format: 'es', plugins: () => [noted()], rollupOptions: { output: { entryFileNames: '[name].js' } } },
  build: {
    outDir: 'built',
    emptyOutDir: true,
    assetsDir: '.',
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      // What the client needs of Node it loads only for unix sockets, which browsers have not.
      external: [/^node:/],
      output: { entryFileNames: 'console.js', chunkFileNames: '[name].js', assetFileNames: 'console[extname]' },
    },
  },
  plugins: [noted(), embedded()],
});
