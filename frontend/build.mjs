// Builds the page's one script and one style sheet into the Python package; with --tests, the unit tests instead.
import { build } from 'esbuild';
import { readdirSync } from 'node:fs';

// Elements as plain calls are shorter than those of the automatic runtime, which tsconfig.json has the types of.
const tsconfigRaw = { compilerOptions: { jsx: 'react', jsxFactory: 'createElement', jsxFragmentFactory: 'Fragment' } };
const common = { tsconfigRaw, bundle: true, inject: ['src/jsx.ts'], logLevel: 'warning', charset: 'utf8' };

if (process.argv.includes('--tests')) {
  const tests = readdirSync('test').filter(name => name.endsWith('.test.ts')).map(name => `test/${name}`);
  await build({ ...common, entryPoints: tests, outdir: 'test-build', platform: 'node', format: 'esm', outExtension: { '.js': '.mjs' } });
} else {
  await build({
    ...common,
    entryPoints: { app: 'src/main.tsx', style: 'src/style.css' },
    outdir: '../src/uncork/render/web',
    format: 'iife',
    target: ['es2022', 'chrome100', 'firefox113', 'safari16.4'],
    minify: true,
    legalComments: 'none',
  });
}
