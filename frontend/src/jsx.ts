// The names that build.mjs has esbuild make of elements.
export { Fragment, createElement } from 'preact';
