import type { Machine } from '../../ddocs/machine.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { patternOf } from '../databases/patterns.ts'
import type { Counted } from './per-database.ts'
import { grouped, Layout, listPath, Text, type Viewer } from './layout.tsx'
import { MachineDiagram, type StateShown } from './machine-diagram.tsx'

/** The state machine of a type in the databases of one pattern. */
export interface ServedMachine {
  /** A name or glob in the settings. */
  readonly pattern: string
  readonly type: string
  readonly machine: Machine
}

interface MachinesProps {
  readonly viewer: Viewer
  readonly machines: readonly ServedMachine[]
  readonly counted: Counted
  readonly patterns: readonly string[]
}

/** Shows each machine as a diagram, with the number of documents in each state. */
export const Machines = ({ viewer, machines, counted, patterns }: MachinesProps) => (
  <Layout title="Machines" isLive={counted.isWhole ? 'slowly' : 'soon'} current="/machines" viewer={viewer}>
    <p>
      The states of each document type, with the number of documents in each. Click a state to list its documents. A
      broken line is a timeout. Every state with a handler can also fail into error.
    </p>
    {machines.map(({ pattern, type, machine }) => (
      <section>
        <h2>
          <Text of={type} />{' '}
          <small>
            in <Text of={pattern} />
          </small>
        </h2>
        <MachineDiagram
          pattern={pattern}
          type={type}
          machine={machine}
          states={statesOf({ pattern, type, machine }, counted, patterns)}
        />
      </section>
    ))}
  </Layout>
)

/** Counts the documents by state and status, including states that the machine does not declare. */
export function statesOf(
  { pattern, type, machine }: ServedMachine,
  { databases }: Pick<Counted, 'databases'>,
  patterns: readonly string[],
): ReadonlyMap<string, StateShown> {
  const counts = new Map<string, Map<string, number>>()
  for (const { name, counted } of databases) {
    if (patternOf(name, patterns) !== pattern) continue
    for (const count of counted?.counts ?? []) {
      if (count.type !== type) continue
      const state = counts.get(count.state) ?? new Map<string, number>()
      counts.set(count.state, state.set(count.status, (state.get(count.status) ?? 0) + count.count))
    }
  }
  return new Map(
    [...counts].map(([state, statuses]) => {
      const isStuck = STUCK.some((status) => statuses.has(status))
      const isDeclared = Object.hasOwn(machine, state)
      const isHandled = machine[state]?.mode !== undefined
      const [most] = [...statuses].sort(([, one], [, other]) => other - one)
      const status = isStuck ? undefined : most?.[0]
      const counts = [...statuses].map(
        ([one, count]) => `${grouped(count)} ${one === 'ready' && !isHandled ? 'at rest' : one}`,
      )
      const mark = isStuck ? 'bad' : isDeclared ? undefined : 'undeclared'
      return [state, { counts, mark, path: listPath({ db: pattern, type, state, status }) }] as const
    }),
  )
}
