import { AsyncLocalStorage } from 'node:async_hooks'
import type { OfDocument } from '../events/map.ts'

const handlers = new AsyncLocalStorage<OfDocument>()

/** Runs a handler; `whose` names its document in all that comes of it, also in what it leaves behind: timers, promises. */
export const asHandlerOf = <T>(document: OfDocument, run: () => T): T => handlers.run(document, run)

/** The document whose handler has called what runs now. */
export const currentDocument = (): OfDocument | undefined => handlers.getStore()
