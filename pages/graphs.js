/** Draws the recent activity with uPlot. The table beside the graphs holds the same numbers. */
const EVERY_MS = 10_000
/** The lines of each graph: the key of their values, and a colour of the style sheet. */
const GRAPHS = [
  { title: 'Handled and failed, per second', lines: { done: '--good', failed: '--bad' } },
  { title: 'From read to handler, ms', lines: { wait: '--text' } },
  { title: 'Handler run time, ms', lines: { run: '--text' } },
  { title: 'Documents waiting', lines: { waiting: '--text' } },
  { title: 'Feeds behind, s', lines: { behind: '--bad' } },
]
/** Values that are missing while no handler runs. */
const MEANS = ['run', 'wait']
const SPANS = { hour: 'Last hour', day: 'Last day' }
let span = 'hour'
/** @type {uPlot[]} */
let drawn = []

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name)

function draw(place, data) {
  for (const plot of drawn) plot.destroy()
  place.replaceChildren()
  const choice = document.createElement('p')
  for (const [name, text] of Object.entries(SPANS)) {
    const button = document.createElement('button')
    button.className = 'quiet'
    button.textContent = text
    button.setAttribute('aria-pressed', String(name === span))
    button.onclick = () => {
      span = name
      draw(place, data)
    }
    choice.append(button, ' ')
  }
  place.append(choice)
  const shown = data[span]
  drawn = GRAPHS.map(({ title, lines }) => {
    const graph = document.createElement('div')
    const caption = document.createElement('span')
    const names = Object.keys(lines)
    const last = names.map((name) => `${name} ${(shown[name].findLast((value) => value !== null) ?? 0).toPrecision(2)}`)
    caption.textContent = title
    graph.className = 'graph'
    graph.setAttribute('role', 'img')
    graph.setAttribute('aria-label', `${title}, ${SPANS[span].toLowerCase()}; at last: ${last.join(', ')}`)
    graph.append(caption)
    place.append(graph)
    const axis = {
      stroke: colour('--quiet'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui',
    }
    /** @type {uPlot.Options} */
    const options = {
      width: graph.clientWidth,
      height: 140,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_plot, _least, most) => [0, Math.max(most * 1.1, 1)] } },
      axes: [
        { ...axis, values: '{HH}:{mm}' },
        { ...axis, size: 44 },
      ],
      series: [
        {},
        ...Object.entries(lines).map(([name, variable]) => ({
          stroke: colour(variable),
          width: 2,
          points: { show: MEANS.includes(name), size: 4 },
          spanGaps: true,
        })),
      ],
    }
    return new uPlot(options, [shown.at, ...names.map((name) => shown[name])], graph)
  })
}

async function refresh() {
  const place = document.getElementById('graphs')
  if (!place || document.hidden) return
  const answer = await fetch(place.dataset.from ?? '', { headers: { 'sidecar-refresh': '1' } })
  if (answer.ok && !answer.redirected) draw(place, await answer.json())
}

function again() {
  refresh()
    .catch(() => undefined)
    .finally(() => setTimeout(again, EVERY_MS))
}
again()
