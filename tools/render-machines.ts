import type { Machine, Machines, State, Timeout } from '../ddocs/machine.ts'

/** Renders the machines of each database as Markdown: for each type, a diagram, and a table of who may write what. */
export function renderMachines(databases: Readonly<Record<string, Machines>>): string {
  const parts = Object.entries(databases).flatMap(([database, machines]) => [
    `## In ${database}\n`,
    ...Object.entries(machines).map(([type, machine]) => renderMachine(type, machine)),
  ])
  return [HEAD, ...parts].join('\n')
}

const HEAD = `# The machines

This page is generated from \`ddocs/machines.ts\` by \`npm run docs:machines\`. Do not edit it.

A state marked _safe_ or _unsafe_ has a handler. The tables show who may write each transition:

- _client_: every user that may write into the database.
- _owner_: the document's own device, and the other devices of its owner.
- _sidecar_: the sidecar alone.

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
    '| from | to | who |',
    '| --- | --- | --- |',
    ...states.flatMap(([name, state]) => (state.create ? [row('(nothing)', name, state.create)] : [])),
    ...states.flatMap(([name, state]) => rowsOf(name, state)),
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

const rowsOf = (name: string, { next = {}, timeout }: State): string[] =>
  Object.entries(next).map(([target, writer]) =>
    row(name, target, timeout?.next === target ? `${writer}, ${whenEnds(timeout)}` : writer),
  )

const row = (from: string, to: string, who: string) => `| ${from} | ${to} | ${who} |`

const whenEnds = (timeout: Timeout): string =>
  'at' in timeout ? `at its ${timeout.at}` : `after ${inHours(timeout.afterMs)}`

const inHours = (ms: number): string => `${ms / 3_600_000} h`
