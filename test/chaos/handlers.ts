/** The type of documents whose handler kills its process. */
export const POISON = 'poison'

/** The handlers of the sidecars under chaos: each takes some time, and has one effect. */
export const handlersModule = (recorderUrl: string, worker: string): string => `
  async function effect(doc, ctx) {
    await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20))
    if (ctx.signal.aborted) throw ctx.signal.reason
    const line = JSON.stringify({ doc: doc._id, key: ctx.key, worker: ${JSON.stringify(worker)} })
    await fetch(${JSON.stringify(recorderUrl)}, { method: 'POST', body: line })
    return { ...doc, state: 'done' }
  }
  export default {
    machines: {},
    register(control) {
      control.safe('safe', 'new', effect)
      control.unsafe('park', 'new', effect)
      control.unsafe('retry', 'new', effect, { onLost: 'retry' })
      control.unsafe('${POISON}', 'new', () => process.kill(process.pid, 'SIGKILL'), { onLost: 'retry' })
    },
  }`

/** Code that is loaded before a sidecar, and shifts its clock by an hour. */
export const shiftedClock = (ms: number): string => `
  const now = Date.now
  Date.now = () => now() + ${ms}
  globalThis.Date = class extends Date {
    constructor(...parts) {
      super(...(parts.length === 0 ? [Date.now()] : parts))
    }
  }
  Date.now = () => now() + ${ms}`
