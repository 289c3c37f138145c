/** `npm run example`: serves the example. It needs a running sidecar (`npm start`). */
import { stop } from 'esbuild'
import { exampleFiles } from './files.ts'
import { serveSite } from './site.ts'

const { SIDECAR = 'http://localhost:5985', COUCHDB = 'http://localhost:5984', PORT = '8080' } = process.env

const files = await exampleFiles('/')
await stop()
const site = await serveSite({
  files,
  proxies: { '/inbox': `${SIDECAR}/inbox`, '/couchdb': COUCHDB },
  port: Number(PORT),
})
console.log(`The example is at ${site.url}. It expects a sidecar at ${SIDECAR} and CouchDB at ${COUCHDB}.`)
process.once('SIGINT', () => void site.close())
process.once('SIGTERM', () => void site.close())
