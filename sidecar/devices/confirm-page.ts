/**
 * The page behind the link in a confirmation mail. Mail scanners follow links, so a GET changes nothing. It shows what
 * the link is for only if the link has the right code. The POST of the code on the device confirms; no mail has it.
 *
 * A browser gets pages. A program that requests JSON (`Accept: application/json`) gets `{"ok":true}` or CouchDB's
 * `{"error":…,"reason":…}`, with the same statuses: 200 confirmed, 202 pending, 403 refused, 410 expired.
 */
import { Hono, type Context, type MiddlewareHandler } from 'hono'
import { accepts } from 'hono/accepts'
import type { Logger } from 'pino'
import { CouchError } from '../couch/couch-errors.ts'
import type { ClickOutcome, Confirmations, Followed } from './confirmations.ts'
import { confirmedView, expiredView, formView, pendingView, refusedView } from './confirm-views.ts'
import { HttpError, methodNotAllowed } from '../http/http-errors.ts'

export interface ConfirmPageOptions {
  readonly confirmations: Confirmations
  readonly log: Logger
}

const PATH = '/confirm/:device/:code'
const MAX_ID = 256
const MAX_CODE = 64

export function confirmPage({ confirmations, log }: ConfirmPageOptions): Hono {
  const app = new Hono()
  app.use(PATH, sameOrigin())
  app.get(PATH, async (c) => {
    const { device: deviceId, code: confirmCode } = c.req.param()
    const possible = isPlain(deviceId, MAX_ID) && isPlain(confirmCode, MAX_ID)
    const link = { deviceId, confirmCode, signal: c.req.raw.signal }
    const followed = possible ? await confirmations.follow(link).catch(unknownWhileAway) : UNKNOWN
    return followed.kind === 'expired' ? c.html(expiredView(), 410) : c.html(formView(followed))
  })
  app.post(PATH, async (c) => {
    const deviceCode = await readDeviceCode(c)
    const { device: deviceId, code: confirmCode } = c.req.param()
    const click = { deviceId, confirmCode, deviceCode, signal: c.req.raw.signal }
    const possible = isPlain(deviceId, MAX_ID) && isPlain(confirmCode, MAX_ID)
    const outcome: ClickOutcome = possible ? await confirmations.click(click) : { kind: 'refused' }
    log.debug({ device: deviceId, outcome: outcome.kind }, 'confirm page')
    return wantsJson(c) ? answerJson(c, outcome) : answerPage(c, outcome, deviceCode)
  })
  app.all(PATH, methodNotAllowed('GET', 'HEAD', 'POST'))
  return app
}

const UNKNOWN = { kind: 'unknown' } as const

/** Shows the form even while CouchDB is unavailable. */
function unknownWhileAway(thrown: unknown): Followed {
  if (thrown instanceof CouchError) return UNKNOWN
  throw thrown
}

const wantsJson = (c: Context): boolean =>
  accepts(c, { header: 'Accept', supports: ['text/html', 'application/json'], default: 'text/html' }) ===
  'application/json'

function answerPage(c: Context, outcome: ClickOutcome, deviceCode: string) {
  switch (outcome.kind) {
    case 'confirmed':
      return c.html(confirmedView(outcome))
    case 'pending':
      return c.html(pendingView(deviceCode), 202)
    case 'refused':
      return c.html(refusedView(), 403)
    case 'expired':
      return c.html(expiredView(), 410)
  }
}

function answerJson(c: Context, outcome: ClickOutcome) {
  switch (outcome.kind) {
    case 'confirmed': {
      const { user, password } = outcome
      return c.json({ ok: true, user, password })
    }
    case 'pending':
      return c.json(
        { pending: true, reason: 'The confirmation is still in progress. Try again in a few seconds.' },
        202,
      )
    case 'refused':
      return c.json({ error: 'forbidden', reason: 'These codes do not match or are no longer valid.' }, 403)
    case 'expired':
      return c.json({ error: 'expired', reason: 'This link has expired. Request a new mail on the device.' }, 410)
  }
}

/** Text that CouchDB can store: no control characters, no lone surrogates. */
const isPlain = (text: string, maxLength: number): boolean =>
  text !== '' && text.length <= maxLength && !/[\p{Cc}\p{Cs}]/u.test(text)

async function readDeviceCode(c: Context): Promise<string> {
  const given = await readGiven(c)
  const code = given.length === 1 && typeof given[0] === 'string' ? given[0].trim() : ''
  if (!isPlain(code, MAX_CODE)) {
    throw new HttpError(400, 'bad_request', 'Expected the code that the device shows, once, as device_code.')
  }
  return code
}

/** All values of `device_code`, of any type. */
async function readGiven(c: Context): Promise<unknown[]> {
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase()
  const body = await c.req.text()
  if (type === 'application/x-www-form-urlencoded') return new URLSearchParams(body).getAll('device_code')
  if (type === 'application/json') return [(parseJson(body) as { device_code?: unknown } | null)?.device_code]
  const reason = 'Content-Type must be application/x-www-form-urlencoded or application/json'
  throw new HttpError(415, 'bad_content_type', reason)
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch (cause) {
    throw new HttpError(400, 'bad_request', 'invalid UTF-8 JSON', { cause })
  }
}

/**
 * Refuses requests that a page of another site makes a browser send. Browsers name the site in `Sec-Fetch-Site`, or
 * over plain HTTP in `Origin`. Only the host of `Origin` is compared: a proxy in front may have changed the scheme.
 * `null` is allowed: browsers send it for a form on a page with `no-referrer`, like these pages. Programs send neither
 * header.
 */
const sameOrigin = (): MiddlewareHandler =>
  async function sameOrigin(c, next) {
    if (!['GET', 'HEAD'].includes(c.req.method)) {
      const site = c.req.header('sec-fetch-site')
      const origin = c.req.header('origin')
      const allowed = site === undefined ? isSameHost(origin, c.req.header('host')) : SITES.includes(site)
      if (!allowed) throw new HttpError(403, 'forbidden', 'This request came from another site.')
    }
    await next()
  }

const SITES = ['same-origin', 'none']

const isSameHost = (origin: string | undefined, host: string | undefined): boolean =>
  origin === undefined || origin === 'null' || (URL.canParse(origin) && new URL(origin).host === host)
