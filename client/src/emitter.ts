/** Sends events to all listeners. A listener that throws does not affect the others. */
export interface Emitter<Events> {
  /** Returns a function that removes the listener. */
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
            throw thrown // an error of the app, reported as uncaught
          })
        }
      }
    },
  }
}
