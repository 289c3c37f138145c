/** Layout of the sidecar's pages. They load nothing: one style sheet and one small script, each allowed by its hash. */
import { html, raw } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>

export const style = `
:root {
  color-scheme: light dark;
  --ground: #f4f1ee; --card: #ffffff; --text: #24201d; --quiet: #6a625b; --line: #cfc7bf; --accent: #b3261e; --on-accent: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #191715; --card: #24211e; --text: #efe9e4; --quiet: #ada39a; --line: #57504a; --accent: #ff8a7a; --on-accent: #2b0a06;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem;
  background: var(--ground); color: var(--text); font: 1.0625rem/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif;
}
main {
  width: 100%; max-width: 27rem; padding: 2rem 1.75rem; background: var(--card); border-radius: 1rem;
  border-top: .375rem solid var(--accent); box-shadow: 0 1px 2px rgb(0 0 0 / .08), 0 8px 24px rgb(0 0 0 / .08);
}
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25; }
p { margin: 0 0 1rem; }
form { margin: 1.5rem 0; }
label { display: block; margin-bottom: .375rem; font-weight: 600; }
input, button { width: 100%; min-height: 3.25rem; border-radius: .625rem; font: inherit; }
input {
  padding: .5rem .875rem; border: 1px solid var(--line); background: transparent; color: inherit;
  font-size: 1.375rem; letter-spacing: .08em;
}
button { margin-top: .875rem; border: 0; background: var(--accent); color: var(--on-accent); font-weight: 600; cursor: pointer; }
button:hover { filter: brightness(1.08); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
a { color: var(--accent); }
dl { margin: 1.25rem 0; padding: 1rem; border: 1px dashed var(--line); border-radius: .625rem; }
dt { color: var(--quiet); font-size: .9375rem; }
dd { margin: 0 0 .75rem; }
dd:last-child { margin-bottom: 0; }
code { font: 1.0625rem/1.5 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; user-select: all; }
.copy { min-height: 2.25rem; margin: .25rem 0 0; background: transparent; color: inherit; border: 1px solid var(--line); font-weight: 400; }
.quiet { margin: 0; color: var(--quiet); font-size: .9375rem; }
`

/** Copies the text beside a button; if the browser refuses, selects the text. */
export const script = `
for (const button of document.querySelectorAll('.copy')) {
  const text = button.parentElement.querySelector('code')
  button.hidden = false
  button.onclick = async () => {
    getSelection().selectAllChildren(text)
    try {
      await navigator.clipboard.writeText(text.textContent)
      button.textContent = 'Copied'
    } catch {
      button.textContent = document.execCommand('copy') ? 'Copied' : 'Selected: copy it'
    }
  }
}
`
export const copyScript = raw(`<script>${script}</script>`)

/** Built as one string, because its hash covers every character between the tags. */
const styleElement = raw(`<style>${style}</style>`)

/** Wraps content in a complete page. */
export const page = (title: string, content: Html): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>${title}</title>
        ${styleElement}
      </head>
      <body>
        <main>${content}</main>
      </body>
    </html>`

/** The page that a person gets for an error. */
export const errorPage = (status: number, reason: string): Html => {
  const title = titles[status] ?? 'That did not work'
  return page(
    title,
    html`<h1>${title}</h1>
      <p>${reason}</p>`,
  )
}

const titles: Readonly<Record<number, string>> = {
  404: 'There is no such page',
  500: 'Something went wrong',
  503: 'Please try again in a moment',
}
