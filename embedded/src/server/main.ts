/**
 * The server process: `express-pouchdb` with databases in memory, for one admin. It ends with its parent. It mends
 * faults that make `express-pouchdb` useless for the sidecar:
 *
 * - A failing request does not end the server. Without the mend, any exception in a callback ends it, for instance a
 *   feed with a missing filter. Such a request gets a 500 if it has no answer yet.
 * - Only a server admin creates and deletes databases. Without the mend, the server crashes when another user tries to
 *   create one. After another user tries to delete one, every later request to a database fails.
 * - A deleted database stays deleted. Without the mend, an earlier request creates it again, a concurrent write gets no
 *   answer, and its feeds continue without rows. With it, both requests get a 404, and the feeds end.
 * - Answers are not compressed: the compression does not flush, so rows of a compressed feed never leave the server.
 * - A form (curl's default content type) is read as JSON, as CouchDB does. Without the mend, it is ignored, and an
 *   empty document is stored.
 * - `validate_doc_update` gets a replicated document with the history of the one before it. Without the mend, that
 *   history is written into the document itself, which then counts as the stored one: a client's change is lost without
 *   an error.
 * - An exception in a callback does not stop its database. Without the mend, every later request to it waits for ever.
 * - An attachment with a broken body is not stored. Without the mend, an empty one is stored.
 * - A `validate_doc_update` is compiled once. Without the mend, all design documents are read and compiled for each
 *   document that is written.
 * - A map function is compiled once. Without the mend, it is compiled in a new context for each document.
 * - A missing document costs no stack trace, and the size of a database is not read from the disk.
 */
import './mends.ts' // before the modules that it mends
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

/** The API of PouchDB's packages, which come without types. */
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

/** A random password needs no key stretching, which would slow down every request. */
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

/** Requests the session of these credentials from the server itself. */
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
