import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import type { Couch } from '../couch/client.ts'
import { createCompiler } from '../deploy/compiler.ts'
import type { LoadedHandlers } from '../docstate/handlers.ts'
import { loadTemplates } from '../mail/templates.ts'
import { createHandlerTables, type HandlerTables } from '../databases/handler-tables.ts'

/** Handlers by database for a sidecar with these settings, for commands that only show them. */
export const tablesFor = (couch: Couch, config: Config, handlers: LoadedHandlers): HandlerTables =>
  createHandlerTables({
    ...{ config, handlers, couch, compiler: createCompiler(), templates: loadTemplates(), clock: systemClock },
    ...{ publicUrl: '', syncUrl: '' },
  })
