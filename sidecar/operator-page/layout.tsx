import type { Child } from 'hono/jsx'
import type { UserCtx } from '../couch/session.ts'
import { isAdmin } from '../http/authenticate.ts'
import { oneLine, printable } from '../core/visible.ts'

/** The user who views a page. */
export interface Viewer {
  readonly name: string
  /** Without this right, the viewer can only read. */
  readonly mayAct: boolean
}

export const viewerOf = (userCtx: UserCtx): Viewer => ({ name: userCtx.name ?? 'everyone', mayAct: isAdmin(userCtx) })

interface LayoutProps {
  readonly title: string
  /** Path of the page's entry in the navigation. */
  readonly current?: string
  /** How often an open page is loaded again; undefined: never. */
  readonly isLive?: 'slowly' | 'soon' | undefined
  readonly hasGraphs?: boolean
  readonly viewer: Viewer | undefined
  readonly children?: Child
}

const ENTRIES = [
  ['/', 'Overview'],
  ['/machines', 'Machines'],
  ['/documents', 'Documents'],
  ['/handlers', 'Handlers and workers'],
  ['/indexes', 'Indexes'],
  ['/deploys', 'Deploys'],
  ['/mails', 'Mails'],
  ['/person', 'Devices and channels'],
] as const

/** A complete page. */
export const Layout = ({ title, current, isLive, hasGraphs, viewer, children }: LayoutProps) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="robots" content="noindex" />
      <title>{title} – couchdb-sidecar</title>
      <link rel="stylesheet" href="/_page/page.css" />
      <script type="module" src="/_page/live.js"></script>
      {hasGraphs && (
        <>
          <link rel="stylesheet" href="/_page/uplot.css" />
          <script src="/_page/uplot.js" defer></script>
          <script type="module" src="/_page/graphs.js"></script>
        </>
      )}
    </head>
    <body>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header>
        <strong>couchdb-sidecar</strong>
        {viewer && (
          <>
            <nav aria-label="Pages">
              <ul>
                {ENTRIES.map(([path, name]) => (
                  <li>
                    <a href={path} aria-current={path === current ? 'page' : undefined}>
                      {name}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            <form method="post" action="/sign-out">
              <span>{oneLine(viewer.name)}</span>
              <button class="quiet">Sign out</button>
            </form>
          </>
        )}
      </header>
      <main id="main" tabindex={-1} data-live={isLive}>
        <h1>{title}</h1>
        {children}
      </main>
    </body>
  </html>
)

/** A text from a document, in one line. */
export const Text = ({ of: text }: { readonly of: string }) => <bdi>{oneLine(text)}</bdi>

/** Texts, one per line. */
export const Sentences = ({ of: lines }: { readonly of: readonly string[] }) => (
  <ul>
    {lines.map((line) => (
      <li>
        <Text of={line} />
      </li>
    ))}
  </ul>
)

/** A time as documents hold it. */
export const Time = ({ at }: { readonly at: string | undefined }) =>
  at === undefined ? (
    <>–</>
  ) : (
    <time datetime={oneLine(at)}>
      {oneLine(at)
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z')}
    </time>
  )

export const Json = ({ of: value }: { readonly of: unknown }) => (
  <pre tabindex={0} role="region" aria-label="JSON">
    {printable(JSON.stringify(value, null, 2))}
  </pre>
)

export const grouped = (count: number): string => count.toLocaleString('en')

export const documentPath = (database: string, id: string): string =>
  `/document?${new URLSearchParams({ db: database, id }).toString()}`

export const listPath = (filter: Readonly<Record<string, string | undefined>>): string =>
  `/documents?${new URLSearchParams(Object.entries(filter).flatMap(([key, value]): [string, string][] => (value ? [[key, value]] : []))).toString()}`

/** Hidden fields of a form. */
export const Hidden = ({ values }: { readonly values: Readonly<Record<string, string | undefined>> }) => (
  <>
    {Object.entries(values).map(
      ([name, value]) => value !== undefined && <input type="hidden" name={name} value={value} />,
    )}
  </>
)

interface TableProps {
  /** Name of the table, or the id of its heading. */
  readonly label?: string
  readonly labelledby?: string
  /** An empty name means a column of buttons. */
  readonly columns: readonly string[]
  readonly children?: Child
}

/** Scrolls by itself if it is wider than the page. */
export const Table = ({ label, labelledby, columns, children }: TableProps) => (
  <div class="scrolls" tabindex={0} role="region" aria-label={label} aria-labelledby={labelledby}>
    <table>
      <thead>
        <tr>{columns.map((name) => (name === '' ? <td></td> : <th scope="col">{name}</th>))}</tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
)

interface RetryOrDiscardProps {
  /** Form fields that select the documents. */
  readonly values: Readonly<Record<string, string | undefined>>
  /** Text after the verb on the buttons: `all`. */
  readonly what?: string
  readonly mayDiscard?: boolean
}

/** Buttons that lead to the confirmation page. */
export const RetryOrDiscard = ({ values, what = '', mayDiscard = true }: RetryOrDiscardProps) => (
  <form method="get" action="/act">
    <Hidden values={values} />
    <button name="verb" value="retry">
      {`Retry ${what}`.trim()}
    </button>
    {mayDiscard && (
      <button name="verb" value="discard" class="quiet">
        {`Discard ${what}`.trim()}
      </button>
    )}
  </form>
)
