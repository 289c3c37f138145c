import type { Machine, Machines, State, Timeout } from '../ddocs/machine.ts'

/** Renders the machines of each database as Markdown: a diagram for each type, whose arrows say who may write the transition. */
export function renderMachines(databases: Readonly<Record<string, Machines>>): string {
  const parts = Object.entries(databases).flatMap(([database, machines]) => [
    `## In ${database}\n`,
    ...Object.entries(machines).map(([type, machine]) => renderMachine(type, machine)),
  ])
  return [HEAD, ...parts].join('\n')
}

const HEAD = `# The machines

This page is generated from \`ddocs/machines.ts\` by \`npm run docs:machines\`. Do not edit it.

A state marked _safe_ or _unsafe_ has a handler. An arrow says who may write the transition:

- _client_: every user that may write into the database.
- _owner_: the document's own device, and the other devices of its owner.
- _sidecar_: the sidecar alone. It also writes the transitions with a time, when that time has come.

Server admins may write any transition.
`

function renderMachine(type: string, machine: Machine): string {
  const states = Object.entries(machine)
  return [
    `### ${type}`,
    '',
    '```mermaid',
    'stateDiagram-v2',
    ...states.flatMap(([name, state]) => diagramOf(name, state)),
    '```',
    '',
  ].join('\n')
}

function diagramOf(name: string, { mode, create, next = {}, timeout }: State): string[] {
  const targets = Object.entries(next)
  return [
    ...(create ? [`  [*] --> ${name}: ${create}`] : []),
    ...(mode ? [`  ${name}: ${name} (${mode})`] : []),
    ...targets.map(([target, writer]) => `  ${name} --> ${target}: ${writer}`),
    ...(timeout ? [`  ${name} --> ${timeout.next}: ${whenEnds(timeout)}`] : []),
    ...(targets.length === 0 ? [`  ${name} --> [*]`] : []),
  ].filter((line) => !timeout || line !== `  ${name} --> ${timeout.next}: sidecar`)
}

const whenEnds = (timeout: Timeout): string =>
  'at' in timeout ? `at its ${timeout.at}` : `after ${durationOf(timeout.afterMs)}`

const UNITS = [
  ['days', 86_400_000],
  ['hours', 3_600_000],
  ['minutes', 60_000],
] as const

/** In the largest unit that a whole number above one of them makes: `7 days`, `24 hours`. */
function durationOf(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms % length === 0 && ms > length) ?? ['ms', 1]
  return `${ms / length} ${unit}`
}
