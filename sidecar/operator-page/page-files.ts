/** The scripts and styles that the pages load. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Hono } from 'hono'

const own = createRequire(import.meta.url)
const folder = join(dirname(own.resolve('couchdb-sidecar/package.json')), 'pages')
/** By the names in their addresses. */
const FILES = [
  ['page.css', 'text/css', join(folder, 'page.css')],
  ['live.js', 'text/javascript', join(folder, 'live.js')],
  ['graphs.js', 'text/javascript', join(folder, 'graphs.js')],
  ['uplot.js', 'text/javascript', own.resolve('uplot/dist/uPlot.iife.min.js')],
  ['uplot.css', 'text/css', own.resolve('uplot/dist/uPlot.min.css')],
] as const

export function pageFiles(): Hono {
  const app = new Hono()
  for (const [name, type, file] of FILES) {
    const text = readFileSync(file, 'utf8')
    app.get(`/_page/${name}`, (c) => c.body(text, 200, { 'Content-Type': type, 'Cache-Control': 'max-age=300' }))
  }
  return app
}
