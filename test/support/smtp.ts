import { once } from 'node:events'
import type { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { onTestFinished } from 'vitest'
import { listenOnOwnPort } from './free-port.ts'

/** The server's behaviour for each message. */
export type SmtpMode =
  | { readonly kind: 'accept' }
  | { readonly kind: 'refuse-recipient'; readonly code: number }
  | { readonly kind: 'refuse-message'; readonly code: number }
  /** Accepts, but delays its reply. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** Delays its greeting. */
  | { readonly kind: 'slow-greeting'; readonly delayMs: number }
  /** Breaks the connection during the message. */
  | { readonly kind: 'cut-during-message' }
  /** Accepts the message and breaks the connection before its reply. */
  | { readonly kind: 'cut-after-message' }

export interface AcceptedMail extends Email {
  /** The addresses of the envelope. */
  readonly envelope: { readonly from: string; readonly to: readonly string[] }
}

export interface TestSmtp {
  /** `smtp://127.0.0.1:port`. */
  readonly url: string
  /** The accepted mails, in order. */
  readonly accepted: readonly AcceptedMail[]
  /** Each `RCPT` command as received, before the server parses an address. */
  readonly commands: readonly string[]
  /** The number of `RCPT` commands: attempts, with any result. */
  readonly tries: number
  readonly openConnections: number
  /** Changes the behaviour from now on. */
  behave(mode: SmtpMode): void
  /** Breaks every connection and refuses new ones. */
  down(): Promise<void>
  /** Accepts connections again after `down`, on the same port. */
  up(): Promise<void>
  /** Resets the server: it accepts everything, and its list of accepted mails is empty. */
  renew(): Promise<void>
  close(): Promise<void>
}

/** A real SMTP server that accepts everything by default. It closes at the end of the test. */
export async function startTestSmtp(): Promise<TestSmtp> {
  const smtp = await openTestSmtp()
  onTestFinished(() => smtp.close())
  return smtp
}

/** As `startTestSmtp`, for all tests of a file. The file must close it. */
export async function openTestSmtp(): Promise<TestSmtp> {
  const accepted: AcceptedMail[] = []
  const commands: string[] = []
  const sockets = new Map<number | undefined, Socket>()
  let mode: SmtpMode = { kind: 'accept' }
  let tries = 0
  const stopped = new AbortController()

  const cut = ({ remotePort }: SMTPServerSession) => sockets.get(remotePort)?.destroy()

  async function receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    if (mode.kind === 'cut-during-message') {
      cut(session)
      return
    }
    const raw = await buffer(stream)
    if (mode.kind === 'refuse-message') throw refusal(mode.code)
    if (mode.kind === 'slow') await wait(mode.delayMs, stopped.signal)
    const { mailFrom, rcptTo } = session.envelope
    const envelope = { from: mailFrom ? mailFrom.address : '', to: rcptTo.map(({ address }) => address) }
    accepted.push({ ...(await PostalMime.parse(raw)), envelope })
    if (mode.kind === 'cut-after-message') cut(session)
  }

  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    onAuth: (auth, _session, done) => done(null, { user: auth.username }),
    onConnect(_session, done) {
      void (mode.kind === 'slow-greeting' ? wait(mode.delayMs, stopped.signal) : Promise.resolve()).then(() => done())
    },
    onRcptTo(_address, _session, done) {
      tries += 1
      done(mode.kind === 'refuse-recipient' ? refusal(mode.code) : null)
    },
    onData: (stream, session, done) => void receive(stream, session).then(() => done(), done),
  })
  server.on('error', () => {}) // errors of broken connections
  server.server.on('connection', (socket: Socket) => {
    const { remotePort } = socket
    sockets.set(remotePort, socket)
    socket.on('data', (bytes: Buffer) => commands.push(...(bytes.toString().match(/^RCPT .*$/gm) ?? [])))
    socket.once('close', () => sockets.delete(remotePort))
  })
  const port = await listenOnOwnPort(server.server)

  const down = async () => {
    if (!server.server.listening) return
    const closed = once(server.server, 'close')
    server.server.close()
    for (const socket of sockets.values()) socket.destroy()
    await closed
  }
  const up = async () => void (await once(server.listen(port, '127.0.0.1'), 'listening'))
  return {
    url: `smtp://127.0.0.1:${port}`,
    accepted,
    commands,
    get tries() {
      return tries
    },
    get openConnections() {
      return sockets.size
    },
    behave(next) {
      mode = next
    },
    down,
    up,
    async renew() {
      mode = { kind: 'accept' }
      tries = accepted.length = commands.length = 0
      if (!server.server.listening) await up()
    },
    close() {
      stopped.abort()
      return down()
    },
  }
}

const refusal = (code: number) => Object.assign(new Error(`refused with ${code}`), { responseCode: code })

/** Resolves after `ms`, or when the signal aborts. */
function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()))
  })
}
