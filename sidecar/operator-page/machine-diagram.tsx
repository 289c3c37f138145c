/** Draws a machine: a box for each state with its number of documents, an arrow for each step. */
import untyped from '@dagrejs/dagre'
import { LRUCache } from 'lru-cache'
import type { Machine, State } from '../../ddocs/machine.ts'
import { lasting } from '../core/duration.ts'
import { oneLine } from '../core/visible.ts'
import { grouped } from './layout.tsx'

export interface StateShown {
  /** Text under the state's name. */
  readonly counts: readonly string[]
  readonly mark: 'bad' | 'undeclared' | undefined
  /** Path of the list of its documents; undefined if the state has none. */
  readonly path: string | undefined
}

interface DiagramProps {
  readonly type: string
  /** Name or glob of the databases. */
  readonly pattern: string
  readonly machine: Machine
  /** By state, including states that the machine does not declare. */
  readonly states: ReadonlyMap<string, StateShown>
}

interface Box {
  readonly state: string
  readonly x: number
  readonly y: number
  readonly width: number
}

interface Arrow {
  readonly points: readonly { readonly x: number; readonly y: number }[]
  readonly kind: 'step' | 'time' | 'renamed'
  readonly label: string
}

interface Drawing {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
  readonly boxes: readonly Box[]
  readonly arrows: readonly Arrow[]
}

/** The used part of dagre. Its own types name files without endings, which TypeScript does not find here. */
interface Dagre {
  readonly graphlib: { readonly Graph: new (options: { readonly multigraph: boolean }) => Graph }
  readonly layout: (graph: Graph) => void
}
interface Graph {
  setGraph(options: object): void
  setNode(name: string, size: object): void
  hasNode(name: string): boolean
  setEdge(from: string, to: string, label: object, name: string): void
  graph(): { readonly width?: number; readonly height?: number }
  node(name: string): Omit<Box, 'state'>
  edges(): readonly { readonly name: string }[]
  edge(edge: { readonly name: string }): Pick<Arrow, 'points'>
}
const dagre = untyped as unknown as Dagre

/** Pixels. */
const [HEIGHT, A_LETTER, LEAST_WIDTH, MARGIN] = [64, 8, 168, 8]

/** A layout takes some milliseconds, and the machines of a process do not change. */
const drawings = new LRUCache<string, Drawing>({ max: 200 })

function drawingOf(machine: Machine, names: readonly string[]): Drawing {
  const key = JSON.stringify([machine, names])
  const drawn = drawings.get(key) ?? draw(machine, names)
  drawings.set(key, drawn)
  return drawn
}

function draw(machine: Machine, names: readonly string[]): Drawing {
  const graph = new dagre.graphlib.Graph({ multigraph: true })
  graph.setGraph({ rankdir: 'LR', nodesep: 24, ranksep: 48, marginx: MARGIN, marginy: MARGIN })
  for (const state of names)
    graph.setNode(state, { width: Math.max(LEAST_WIDTH, state.length * A_LETTER + 32), height: HEIGHT })
  const arrows: Omit<Arrow, 'points'>[] = []
  const add = (from: string, to: string, arrow: Omit<Arrow, 'points'>) => {
    if (from === to || !graph.hasNode(to)) return // writing the same state again is no step
    if (to === 'error' && arrow.kind === 'step') return // any handler may fail: these arrows would hide the others
    graph.setEdge(
      from,
      to,
      { width: arrow.label.length * A_LETTER * 0.8, height: 16, labelpos: 'c' },
      String(arrows.length),
    )
    arrows.push(arrow)
  }
  for (const [state, { next = {}, timeout, renamed }] of Object.entries(machine)) {
    if (timeout) add(state, timeout.next, { kind: 'time', label: timeLabel(timeout) })
    if (renamed !== undefined) add(state, renamed, { kind: 'renamed', label: 'renamed' })
    for (const to of Object.keys(next)) if (to !== timeout?.next) add(state, to, { kind: 'step', label: '' })
  }
  dagre.layout(graph)
  const lines = graph.edges().map((edge) => ({ ...arrows[Number(edge.name)]!, points: graph.edge(edge).points }))
  const { width = 0, height = 0 } = graph.graph()
  const [xs, ys] = (['x', 'y'] as const).map((axis) =>
    lines.flatMap(({ points }) => points.map((point) => point[axis])),
  )
  const [left, top] = [Math.min(0, ...xs!.map((x) => x - MARGIN)), Math.min(0, ...ys!.map((y) => y - MARGIN))]
  return {
    ...{ left: Math.floor(left), top: Math.floor(top) },
    width: Math.ceil(Math.max(width, ...xs!.map((x) => x + MARGIN)) - left),
    height: Math.ceil(Math.max(height, ...ys!.map((y) => y + MARGIN)) - top),
    boxes: names.map((state) => ({ state, ...graph.node(state) })),
    arrows: lines,
  }
}

const timeLabel = (timeout: NonNullable<State['timeout']>): string =>
  'afterMs' in timeout ? `after ${lasting(timeout.afterMs)}` : `at ${timeout.at}`

const middleOf = ({ points }: Arrow) => points[Math.floor(points.length / 2)]!

/** Scrolls by itself if it is wider than the page. */
export const MachineDiagram = ({ type, pattern, machine, states }: DiagramProps) => {
  const names = [...new Set([...Object.keys(machine), ...states.keys()])]
  const name = oneLine(`States of ${type} in ${pattern}`)
  const tip = `tip-${encodeURIComponent(`${pattern}-${type}`)}`
  const { left, top, width, height, boxes, arrows } = drawingOf(machine, names)
  return (
    <div class="scrolls" tabindex={0} role="region" aria-label={name}>
      <svg
        class="machine"
        viewBox={`${left} ${top} ${width} ${height}`}
        width={width}
        height={height}
        role="group"
        aria-label={name}
      >
        <defs>
          <marker id={tip} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M0 0 L8 4 L0 8 z" />
          </marker>
        </defs>
        {arrows.map((arrow) => (
          <>
            <path
              class={`arrow ${arrow.kind}`}
              d={arrow.points.map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join(' ')}
              marker-end={`url(#${tip})`}
            />
            {arrow.label !== '' && (
              <text class="label" x={middleOf(arrow).x} y={middleOf(arrow).y} text-anchor="middle">
                {oneLine(arrow.label)}
              </text>
            )}
          </>
        ))}
        {boxes.map((box) => {
          const shown = states.get(box.state)
          const drawn = <StateBox box={box} state={machine[box.state]} shown={shown} />
          return shown?.path === undefined ? drawn : <a href={shown.path}>{drawn}</a>
        })}
      </svg>
    </div>
  )
}

interface StateBoxProps {
  readonly box: Box
  readonly state: State | undefined
  readonly shown: StateShown | undefined
}

const StateBox = ({ box: { state: name, x, y, width }, state, shown }: StateBoxProps) => (
  <g class={`state ${shown?.mark ?? ''} ${state?.mode ?? ''}`.trimEnd()}>
    <rect x={x - width / 2} y={y - HEIGHT / 2} width={width} height={HEIGHT} rx="8" />
    <text x={x} y={y - 12} text-anchor="middle" class="name">
      {oneLine(name)}
    </text>
    <text x={x} y={y + 5} text-anchor="middle" class="label">
      {state === undefined ? 'not declared' : (state.mode ?? (state.timeout ? 'waits' : 'rests'))}
    </text>
    <text x={x} y={y + 22} text-anchor="middle" class="count">
      {oneLine(shown?.counts.join(', ') ?? grouped(0))}
    </text>
  </g>
)
