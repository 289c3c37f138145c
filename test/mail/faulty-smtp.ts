import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import { onTestFinished } from 'vitest'

interface Reply {
  readonly code: number
  readonly text: string
}

/** The faults of the server, by stage. */
export interface Faults {
  readonly login?: Reply
  readonly mail?: Reply
  readonly rcpt?: Reply
  /**
   * `cut` drops the connection in the middle of the message. `cut-after` drops it after the message, before the answer.
   */
  readonly data?: Reply | 'cut' | 'cut-after' | { readonly until: Promise<void> }
}

export interface FaultySmtp {
  readonly port: number
  readonly url: string
  /** The raw text of each completely received message, including refused and unanswered ones. */
  readonly received: string[]
  /** The messages that the server answered with 250. */
  readonly accepted: string[]
  /** Connections made so far, and open now. */
  connections(): { readonly made: number; readonly open: number }
  become(faults: Faults): void
  /** Ends every connection and frees the port. */
  close(): Promise<void>
}

const refusal = ({ code, text }: Reply) => Object.assign(new Error(text), { responseCode: code })

/**
 * A real SMTP server on a loopback port with configurable faults; closes with the running test. Unlike
 * `support/smtp.ts` it knows every stage, has users, and can hold an answer until the test releases it.
 */
export async function startFaultySmtp({ port = 0, users = false } = {}): Promise<FaultySmtp> {
  let faults: Faults = {}
  let made = 0
  const sockets = new Set<Socket>()
  const received: string[] = []
  const accepted: string[] = []
  const cutAll = () => sockets.forEach((socket) => socket.destroy())

  const server = new SMTPServer({
    disabledCommands: users ? ['STARTTLS'] : ['STARTTLS', 'AUTH'],
    allowInsecureAuth: true,
    disableReverseLookup: true,
    logger: false,
    onAuth: ({ username }, _session, answer) =>
      faults.login ? answer(refusal(faults.login)) : answer(null, { user: username ?? '' }),
    onMailFrom: (_address, _session, answer) => answer(faults.mail ? refusal(faults.mail) : null),
    onRcptTo: (_address, _session, answer) => answer(faults.rcpt ? refusal(faults.rcpt) : null),
    onData(stream, _session, answer) {
      const { data } = faults
      if (data === 'cut') {
        stream.once('data', cutAll)
        return
      }
      void text(stream).then(async (message) => {
        received.push(message)
        if (data === 'cut-after') return cutAll()
        if (data && 'code' in data) return answer(refusal(data))
        if (data) await data.until
        accepted.push(message)
        answer(null)
      })
    },
  })
  // Errors of clients that disconnect: the tests expect them.
  server.on('error', () => {})
  server.server.on('connection', (socket: Socket) => {
    made += 1
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(port, '127.0.0.1')
  await once(server.server, 'listening')
  const bound = (server.server.address() as AddressInfo).port

  const smtp: FaultySmtp = {
    port: bound,
    url: `smtp://${users ? 'me:s3cret@' : ''}127.0.0.1:${bound}`,
    received,
    accepted,
    connections: () => ({ made, open: sockets.size }),
    become: (next) => void (faults = next),
    async close() {
      if (!server.server.listening) return
      const closed = once(server.server, 'close')
      server.close()
      cutAll()
      await closed
    },
  }
  onTestFinished(() => smtp.close())
  return smtp
}

/** Accepts connections and sends nothing or only a greeting, and can hang up afterwards. */
export async function startMute({ greeting = '', hangUp = false } = {}) {
  let made = 0
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    made += 1
    sockets.add(socket)
    socket.on('error', () => {})
    if (greeting) socket.write(greeting)
    if (hangUp) socket.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    sockets.forEach((socket) => socket.destroy())
    server.close()
    await once(server, 'close')
  })
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Connections so far. */
    made: () => made,
  }
}
