/**
 * Reloads the page while it is visible and replaces what has changed. A form in use and a selection are left alone. If the
 * reload fails, the page says so and how old it is.
 */
const EVERY_MS = { slowly: 5000, soon: 1000 }

/** Another module draws the graphs: a reload keeps them. */
const graphsIn = (main) => main.querySelector('#graphs')
const textOf = (main) => main.innerHTML.replace(graphsIn(main)?.innerHTML || '\0', '')

const isAtWork = () => document.activeElement?.closest('main form, main select') != null || !getSelection()?.isCollapsed

let loadedAt = new Date()
const stale = document.createElement('p')
stale.className = 'bad'
stale.setAttribute('role', 'status')

function isOld(why) {
  stale.textContent = `This page is from ${loadedAt.toLocaleTimeString()}: ${why}`
  if (!stale.isConnected) document.querySelector('main h1')?.after(stale)
}

async function refresh() {
  if (document.hidden || isAtWork()) return
  const headers = { accept: 'text/html', 'sidecar-refresh': '1' }
  const answer = await fetch(location.href, { headers }).catch(() => undefined)
  if (!answer) return isOld('the sidecar does not answer.')
  if (answer.redirected) return isOld('you are signed out. Reload it to sign in.')
  const next = new DOMParser().parseFromString(await answer.text(), 'text/html')
  const [before, after] = [document.querySelector('main'), next.querySelector('main')]
  if (!before) return
  // A page that reloads itself is no error page, even if it reports that CouchDB does not answer.
  if (!after || (!answer.ok && !after.dataset.live)) return isOld(`the sidecar answers ${answer.status}.`)
  loadedAt = new Date()
  stale.remove()
  if (isAtWork() || textOf(before) === textOf(after)) return
  const scrolled = [...before.querySelectorAll('.scrolls')].map((part) => part.scrollLeft)
  before.dataset.live = after.dataset.live ?? '' // an order in progress may have ended
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
