import { AsyncLocalStorage } from 'node:async_hooks'
import type { OfDocument } from '../events/map.ts'

const handlers = new AsyncLocalStorage<OfDocument>()

/** Runs a handler. `currentDocument` returns its document, also in timers and promises that outlive the handler. */
export const asHandlerOf = <T>(document: OfDocument, run: () => T): T => handlers.run(document, run)

/** The document whose handler called the current code; undefined outside handlers. */
export const currentDocument = (): OfDocument | undefined => handlers.getStore()
