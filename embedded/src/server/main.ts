/**
 * The process of the server: `express-pouchdb` with its databases in memory, for one admin. It ends with its parent, and
 * mends what would make it useless for the sidecar:
 *
 * - One failing request must not end the server. Any exception in a callback would, for instance when a feed is asked
 *   for with a filter that is not there. Here the request at fault is answered with 500 if it has no answer yet.
 * - Only a server admin makes and deletes databases. It crashes when another user tries to make one; once another user
 *   has tried to delete one, every later request to a database fails.
 * - A database that is deleted stays so. It would be made again for a request that came in before, and another that was
 *   writing into it never answered; its feeds go on, empty. Here the first and the second get a 404, and the feeds end.
 * - Nothing is compressed: it does not flush, so that the rows of a compressed feed never leave it.
 * - A form (what curl sends unless told otherwise) is read as JSON, as CouchDB does. It would be ignored, and an empty
 *   document stored.
 * - A document that was replicated is shown to `validate_doc_update` with the history of the one before it. That would be
 *   written into the document itself, which is then taken for the one that is there: what a client has changed is lost
 *   without a word.
 * - An attachment whose body breaks off is not stored. It would be, as an empty one.
 */
import './mends.ts' // before what it mends is read
import { AsyncLocalStorage } from 'node:async_hooks'
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import { createRequire } from 'node:module'
import { devNull } from 'node:os'
import cors from 'cors'
import type { ServerSettings } from '../process.ts'
import { answer } from './answer.ts'
import { isOfDatabase, track } from './under-way.ts'

if (!process.connected) process.exit()
process.once('disconnect', () => process.exit())

/** As the packages of PouchDB are, which bring no types. */
interface PouchDBStatic {
  plugin(plugin: unknown): PouchDBStatic
}
interface CouchApp {
  (request: http.IncomingMessage, response: http.ServerResponse): void
  setPouchDB(PouchDB: PouchDBStatic): void
  readonly couchConfig: { set(section: string, key: string, value: unknown, done: () => void): void }
}

const answering = new AsyncLocalStorage<http.ServerResponse>()
const readOrigin = cors({ origin: true, credentials: true })

const [settings] = (await once(process, 'message')) as [ServerSettings]
const app = createApp(settings)
const server = http.createServer((request, response) => {
  answering.run(response, () => void receive(request, response))
})
await once(server.listen(settings.port, '127.0.0.1'), 'listening')
process.on('uncaughtException', answerFailure)
process.send!('listening')

function createApp({ password }: ServerSettings): CouchApp {
  const require = createRequire(import.meta.url)
  const load = (name: string) => require(name) as unknown
  const app = (load('express-pouchdb') as (options: object) => CouchApp)({ inMemoryConfig: true, logPath: devNull })
  const nothing = () => {}
  app.couchConfig.set('log', 'level', 'none', nothing)
  app.couchConfig.set('admins', 'admin', hashOf(password), nothing)
  const plugins = ['adapter-memory', 'adapter-http', 'replication', 'mapreduce']
  app.setPouchDB(
    plugins.reduce((PouchDB, name) => PouchDB.plugin(load(`pouchdb-${name}`)), load('pouchdb-core') as PouchDBStatic),
  )
  return app
}

/** A random password needs no key stretching, which would have to be paid for on every request. */
function hashOf(password: string): string {
  const salt = randomBytes(16).toString('hex')
  return `-pbkdf2-${pbkdf2Sync(password, salt, 1, 20, 'sha1').toString('hex')},${salt},1`
}

async function receive(request: http.IncomingMessage, response: http.ServerResponse) {
  delete request.headers['accept-encoding']
  if (isForm(request)) request.headers['content-type'] = 'application/json'
  if (makesOrDeletesDatabase(request) && !(await isAdmin(request))) {
    answer(response, 401, { error: 'unauthorized', reason: 'You are not a server admin.' })
    return
  }
  track(request, response)
  readOrigin(request, response, () => app(request, response))
}

const isForm = ({ url = '', headers }: http.IncomingMessage): boolean =>
  headers['content-type'] === 'application/x-www-form-urlencoded' && !url.startsWith('/_session')

const makesOrDeletesDatabase = (request: http.IncomingMessage): boolean =>
  (request.method === 'PUT' || request.method === 'DELETE') && isOfDatabase(request)

/** Asks the server itself whose credentials these are. */
async function isAdmin({ socket, headers: { authorization = '', cookie = '' } }: http.IncomingMessage) {
  const question = { port: socket.localPort, host: '127.0.0.1', path: '/_session', headers: { authorization, cookie } }
  const said = await new Promise<string>((resolve, reject) => {
    http
      .get(question, (session) => {
        session
          .setEncoding('utf8')
          .toArray()
          .then((chunks) => resolve(chunks.join('')), reject)
      })
      .on('error', reject)
  })
  const { userCtx } = JSON.parse(said) as { userCtx?: { roles: string[] } }
  return userCtx?.roles.includes('_admin') ?? false
}

function answerFailure(error: Error): void {
  console.error(error)
  const response = answering.getStore()
  if (response && !response.headersSent) answer(response, 500, { error: 'unknown_error', reason: error.message })
}
