/**
 * Loads the page again while it is looked at, and puts what has changed in its place: without it the page is the same, as old
 * as its loading. What a person is at is left alone.
 */
const EVERY_MS = { slowly: 5000, soon: 1000 }

/** What another module has drawn stays as it is. */
const graphsIn = (main) => main.querySelector('#graphs')
const textOf = (main) => main.innerHTML.replace(graphsIn(main)?.innerHTML || '\0', '')

const isAtWork = () => document.activeElement?.closest('main form, main select') != null || !getSelection()?.isCollapsed

async function refresh() {
  if (document.hidden || isAtWork()) return
  const answer = await fetch(location.href, { headers: { accept: 'text/html', 'sidecar-refresh': '1' } })
  if (answer.redirected || (!answer.ok && answer.status !== 503)) return // 503: CouchDB is away, and the page says so
  const next = new DOMParser().parseFromString(await answer.text(), 'text/html')
  const [before, after] = [document.querySelector('main'), next.querySelector('main')]
  if (!before || !after || isAtWork() || textOf(before) === textOf(after)) return
  const scrolled = [...before.querySelectorAll('.scrolls')].map((part) => part.scrollLeft)
  before.dataset.live = after.dataset.live ?? ''
  if (graphsIn(before)) graphsIn(after)?.replaceWith(graphsIn(before))
  before.replaceChildren(...after.childNodes)
  before.querySelectorAll('.scrolls').forEach((part, at) => (part.scrollLeft = scrolled[at] ?? 0))
}

function again() {
  const every = EVERY_MS[document.querySelector('main')?.dataset.live ?? '']
  if (every === undefined) return
  setTimeout(
    () =>
      refresh()
        .catch(() => undefined)
        .finally(again),
    every,
  )
}
again()
