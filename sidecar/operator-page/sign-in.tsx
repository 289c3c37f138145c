import type { Context } from 'hono'
import { accepts } from 'hono/accepts'
import type { UserCtx } from '../couch/session.ts'
import { HttpError } from '../http/http-errors.ts'
import { hasRole, type Authenticate } from '../http/authenticate.ts'
import { Layout } from './layout.tsx'

/** Users with one of these roles see the pages. Only server admins may act. */
export const VIEWERS: readonly string[] = ['_admin', 'sidecar-viewer']

/** CouchDB's session cookie. */
export const COOKIE = 'AuthSession'

/** Whether a browser sends the request, and not a program. */
export const wantsPage = (c: Context): boolean =>
  accepts(c, { header: 'Accept', supports: ['application/json', 'text/html'], default: 'application/json' }) ===
  'text/html'

/** The page to return to after signing in: a path of this site only. */
export const pathFrom = (given: unknown): string =>
  typeof given === 'string' && /^\/(?![/\\])[\x21-\x7e]*$/.test(given) ? given : '/'

/** Throws `HttpError` if a form comes from another site. */
export function refuseForeign(c: Context): void {
  const [site, origin] = [c.req.header('sec-fetch-site'), c.req.header('origin')]
  const host = c.req.header('host')
  const isOurs =
    site !== undefined
      ? site === 'same-origin'
      : origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)
  if (!isOurs) throw new HttpError(403, 'forbidden', 'This form comes from another site.')
}

/** Returns the user, if these may see the pages; undefined if signed out. Throws `HttpError` for other users. */
export async function viewing(c: Context, authenticate: Authenticate): Promise<UserCtx | undefined> {
  const userCtx = await authenticate(c)
  if (hasRole(userCtx, VIEWERS)) return userCtx
  if (!userCtx?.name) return undefined
  throw new HttpError(403, 'forbidden', 'You are neither a server admin, nor do you have the role sidecar-viewer.')
}

interface SignInProps {
  readonly to: string
  readonly refusal?: string
}

export const SignIn = ({ to, refusal }: SignInProps) => (
  <Layout title="Sign in" viewer={undefined}>
    <p>
      Use a CouchDB account. Server admins can see and change everything. Users with the role{' '}
      <code>sidecar-viewer</code> can see everything and change nothing.
    </p>
    {refusal && (
      <p class="bad" role="alert">
        {refusal}
      </p>
    )}
    <form method="post" action="/sign-in" class="sign-in">
      <input type="hidden" name="to" value={to} />
      <label for="name">Name</label>
      <input id="name" name="name" autocomplete="username" required autofocus />
      <label for="password">Password</label>
      <input id="password" name="password" type="password" autocomplete="current-password" required />
      <button>Sign in</button>
    </form>
  </Layout>
)
