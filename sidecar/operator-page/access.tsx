/** Who gets a page: signed-in users see, server admins act, everyone else gets the sign-in. */
import { Hono, type Context } from 'hono'
import { html } from 'hono/html'
import type { Child } from 'hono/jsx'
import { isCouchError, isServerAway } from '../couch/couch-errors.ts'
import { HttpError } from '../http/http-errors.ts'
import type { Platform } from '../platform.ts'
import { viewerOf, type Viewer } from './layout.tsx'
import { Away } from './overview.tsx'
import { COOKIE, pathFrom, refuseForeign, SignIn, viewing } from './sign-in.tsx'

/** Returns a page's content, or another answer. */
type MakePage = (c: Context, viewer: Viewer) => Promise<Child | Response>
type Answer = (c: Context) => Promise<Response>

export interface Access {
  /** Answers signed-in users; redirects others to the sign-in. */
  readonly shown: (make: MakePage) => Answer
  /** Answers users who may act, through a form of these pages. */
  readonly acted: (make: MakePage) => Answer
  /** Sign-in and sign-out. */
  readonly routes: Hono
}

interface AccessOptions extends Pick<Platform, 'authenticate' | 'publicUrl' | 'renewSession' | 'signIn'> {
  /** Current problems of this worker. */
  readonly problems: () => readonly string[]
}

/** Allows nothing from other sites, and only scripts that the sidecar serves. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

export function createAccess({ authenticate, publicUrl, renewSession, signIn, problems }: AccessOptions): Access {
  const shown = (make: MakePage) => async (c: Context) => {
    const away = () => {
      c.status(503)
      return page(c, <Away problems={problems()} />)
    }
    const user = await viewing(c, authenticate).catch(awayIf503)
    if (user === 'away') return away()
    if (!user) return c.redirect(`/sign-in?to=${encodeURIComponent(pathOf(c))}`, 303)
    const isByItself = c.req.header('sidecar-refresh') !== undefined
    const renewed = isByItself ? undefined : await renewSession(c)
    if (renewed !== undefined) c.header('Set-Cookie', cookieOf(renewed, publicUrl))
    const made = await make(c, viewerOf(user)).catch(c.req.method === 'GET' ? awayIf503 : undefined)
    if (made === 'away') return away()
    return made instanceof Response ? made : page(c, made)
  }

  const acted = (make: MakePage) => {
    const answer = shown((c, viewer) => {
      if (!viewer.mayAct)
        throw new HttpError(403, 'forbidden', 'You have read access only: actions need a server admin.')
      return make(c, viewer)
    })
    return async (c: Context) => {
      refuseForeign(c)
      return answer(c)
    }
  }

  const routes = new Hono()
  routes.get('/sign-in', (c) => page(c, <SignIn to={pathFrom(c.req.query('to'))} />))
  routes.post('/sign-in', async (c) => {
    refuseForeign(c)
    const { name = '', password = '', to } = await fieldsOf(c)
    const cookie = await signIn(c, { name, password })
    if (cookie === undefined) {
      c.status(401)
      return page(c, <SignIn to={pathFrom(to)} refusal="Name or password is incorrect." />)
    }
    c.header('Set-Cookie', cookieOf(cookie, publicUrl))
    return c.redirect(pathFrom(to), 303)
  })
  routes.post('/sign-out', (c) => {
    refuseForeign(c)
    c.header('Set-Cookie', `${cookieOf('', publicUrl)}; Max-Age=0`)
    return c.redirect('/sign-in', 303)
  })
  return { shown, acted, routes }
}

/** The fields of a form. */
export async function fieldsOf(c: Context): Promise<Record<string, string | undefined>> {
  const fields = await c.req.parseBody()
  return Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])),
  )
}

/** Returns `away` while CouchDB cannot be reached; rethrows other errors. */
function awayIf503(thrown: unknown): 'away' {
  if (isCouchError(thrown) && isServerAway(thrown.code)) return 'away'
  throw thrown
}

const pathOf = (c: Context): string => {
  const { pathname, search } = new URL(c.req.url)
  return pathname + search
}

function page(c: Context, content: Child): Response | Promise<Response> {
  c.header('Content-Security-Policy', POLICY)
  return c.html(html`<!doctype html>${content}`)
}

const cookieOf = (value: string, publicUrl: string): string =>
  `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict${publicUrl.startsWith('https:') ? '; Secure' : ''}`
