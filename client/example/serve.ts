/** `npm run example`: serves the example, beside a sidecar that runs (`npm start`). */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { stop } from 'esbuild'
import { bundle } from './bundle.ts'
import { serveSite } from './site.ts'

const { SIDECAR = 'http://localhost:5985', COUCHDB = 'http://localhost:5984', PORT = '8080' } = process.env
const read = (name: string) => readFile(fileURLToPath(new URL(name, import.meta.url)), 'utf8')

const app = await bundle("import './app.ts'")
await stop()
const site = await serveSite({
  files: {
    '/': { type: 'text/html; charset=utf-8', body: await read('index.html') },
    '/style.css': { type: 'text/css', body: await read('style.css') },
    '/app.js': { type: 'text/javascript', body: app },
  },
  proxies: { '/inbox': `${SIDECAR}/inbox`, '/couchdb': COUCHDB },
  port: Number(PORT),
})
console.log(`The example is at ${site.url}. It expects a sidecar at ${SIDECAR} and CouchDB at ${COUCHDB}.`)
process.once('SIGINT', () => void site.close())
process.once('SIGTERM', () => void site.close())
