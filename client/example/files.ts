import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { bundle } from './bundle.ts'
import type { SiteOptions } from './site.ts'

const read = (name: string) => readFile(fileURLToPath(new URL(name, import.meta.url)), 'utf8')

/** The files of the example, below a path that ends with a slash. The process of esbuild keeps running until `stop`. */
export async function exampleFiles(path: string): Promise<SiteOptions['files']> {
  return {
    [path]: { type: 'text/html; charset=utf-8', body: await read('index.html') },
    [`${path}style.css`]: { type: 'text/css', body: await read('style.css') },
    [`${path}app.js`]: { type: 'text/javascript', body: await bundle("import './app.ts'") },
    [`${path}sw.js`]: { type: 'text/javascript', body: await read('sw.js') },
  }
}
