/**
 * Loaded into the process of pouchdb-server before it (`node --import`). It ends that process with its parent, however
 * the parent ends, and mends on the way in what would make pouchdb-server useless for the sidecar:
 *
 * - One failing request must not end the server. pouchdb-server dies of any exception in a callback, for instance when
 *   a feed is asked for with a filter that is not there. Here the request at fault is answered with 500 if it has no
 *   answer yet.
 * - Only a server admin makes and deletes databases. pouchdb-server crashes when anybody else tries to make one; once
 *   somebody else has tried to delete one, every later request to a database fails.
 * - A database that is deleted stays so. pouchdb-server makes it again for a request that came in before, and never
 *   answers another that was writing into it; its feeds go on, empty. Here the first and the second get a 404, and the
 *   feeds end.
 * - Nothing is compressed: pouchdb-server does not flush, so that the rows of a compressed feed never leave it.
 * - A form (what curl sends unless told otherwise) is read as JSON, as CouchDB does. pouchdb-server ignores it, and
 *   stores an empty document.
 * - A document that was replicated is shown to `validate_doc_update` with the history of the one before it. pouchdb-server
 *   writes that into the document itself, which is then taken for the one that is there: whatever a client has changed
 *   is lost without a word.
 *
 * It is bundled, and runs from a temporary directory: of packages it may import Node's alone.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import http from 'node:http'
import { answer } from './pouchdb-answer.ts'
import { isOfDatabase, track } from './pouchdb-under-way.ts'
import './pouchdb-mends.ts'

if (!process.connected) process.exit()
process.once('disconnect', () => process.exit())

const answering = new AsyncLocalStorage<http.ServerResponse>()
const createServer = http.createServer.bind(http)

http.createServer = ((listener: http.RequestListener) => {
  const server = createServer((request, response) => {
    answering.run(response, () => void receive(listener, request, response))
  })
  server.once('listening', () => {
    process.on('uncaughtException', answerFailure)
    process.send?.('listening')
  })
  return server
}) as typeof http.createServer

async function receive(listener: http.RequestListener, request: http.IncomingMessage, response: http.ServerResponse) {
  delete request.headers['accept-encoding']
  if (isForm(request)) request.headers['content-type'] = 'application/json'
  if (makesOrDeletesDatabase(request) && !(await isAdmin(request))) {
    answer(response, 401, { error: 'unauthorized', reason: 'You are not a server admin.' })
    return
  }
  track(request, response)
  listener(request, response)
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
