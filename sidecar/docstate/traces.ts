import { failureOf } from '../core/failure.ts'
import type { Trace, Tracing } from '../tracing/tracing.ts'
import { failedTries, type Attempt } from './attempt.ts'
import type { WinClaim } from './claims/win-claim.ts'
import type { Execute } from './execute.ts'
import type { MailBinding } from './mail.ts'
import type { RunAttempt } from './run-attempt.ts'
import type { SaveOutcome } from './save-outcome.ts'

/** Adds spans to the steps of an attempt. Each method returns its step with tracing. */
export interface Traces {
  /** Span from taking a document, through the wait for its turn, to its save. The other spans are its children. */
  attempt(run: RunAttempt): RunAttempt
  claim(win: WinClaim): WinClaim
  /** Span of the handler. Spans that the handler or its libraries create are its children. */
  handler(execute: Execute): Execute
  save(save: SaveOutcome): SaveOutcome
  mail(binding: MailBinding): MailBinding
}

const same = <T>(part: T): T => part
/** Without a tracer, the steps stay as they are. */
export const untraced: Traces = { attempt: same, claim: same, handler: same, save: same, mail: same }

export function createTraces(tracing: Tracing, database: string): Traces {
  /** Traces of the attempts under way. */
  const traces = new WeakMap<Attempt, Trace>()
  const nameOf = ({ registration: { type, state } }: Attempt) => `${type}/${state}`

  async function within<T>(attempt: Attempt, name: string, work: (trace: Trace) => Promise<T>): Promise<T> {
    return during(tracing.begin(name, { parent: traces.get(attempt) }), work)
  }

  return {
    attempt: (run) => (attempt) => {
      const { id, registration, before } = attempt
      const trace = tracing.begin(nameOf(attempt), {
        parent: undefined,
        kind: 'CONSUMER',
        attributes: {
          'db.system.name': 'couchdb',
          'db.namespace': database,
          'couchdb_sidecar.document.id': id,
          'couchdb_sidecar.document.type': registration.type,
          'couchdb_sidecar.document.state': registration.state,
          'couchdb_sidecar.attempt': failedTries(before) + 1,
        },
      })
      traces.set(attempt, trace)
      return during(trace, async () => {
        const end = await run(attempt)
        const next = attempt.saved ? { 'couchdb_sidecar.document.next_state': String(attempt.doc.state) } : {}
        trace.set({ 'couchdb_sidecar.end': end, ...next })
        return end
      })
    },

    claim: (win) => (attempt, turn) =>
      within(attempt, `claim ${nameOf(attempt)}`, async (trace) => {
        const end = await win(attempt, turn)
        trace.set({ 'couchdb_sidecar.claim': end ?? 'won' })
        return end
      }),

    handler: (execute) => async (attempt) => {
      const trace = tracing.begin(`handle ${nameOf(attempt)}`, { parent: traces.get(attempt) })
      const outcome = await trace.run(() => execute(attempt))
      trace.set({ 'couchdb_sidecar.outcome': outcome.kind })
      const stack = 'stack' in outcome ? outcome.stack : undefined
      trace.end('failure' in outcome ? { ...outcome.failure, stack } : undefined)
      return outcome
    },

    save: (save) => (attempt, outcome) => within(attempt, `save ${nameOf(attempt)}`, () => save(attempt, outcome)),

    mail: (binding) => ({
      forEntry(entry) {
        const mail = binding.forEntry(entry)
        return {
          get done() {
            return mail.done
          },
          send: (message) => during(tracing.begin('send mail', { kind: 'PRODUCER' }), () => mail.send(message)),
        }
      },
    }),
  }
}

async function during<T>(trace: Trace, work: (trace: Trace) => Promise<T>): Promise<T> {
  try {
    const result = await trace.run(() => work(trace))
    trace.end()
    return result
  } catch (thrown) {
    trace.end(failureOf(thrown))
    throw thrown
  }
}
