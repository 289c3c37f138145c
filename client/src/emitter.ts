/** What happened goes to all listeners; one that throws does not keep it from the others. */
export interface Emitter<Events> {
  /** Returns the end of it. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void
  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void
}

export function createEmitter<Events>(): Emitter<Events> {
  const listeners = new Map<keyof Events, Set<(event: never) => void>>()

  return {
    on(name, listener) {
      const own = listeners.get(name) ?? new Set()
      listeners.set(name, own.add(listener))
      return () => void own.delete(listener)
    },
    emit(name, event) {
      for (const listener of [...(listeners.get(name) ?? [])]) {
        try {
          listener(event as never)
        } catch (thrown) {
          queueMicrotask(() => {
            throw thrown // the app's fault, where the app looks for its faults
          })
        }
      }
    },
  }
}
