import { access, readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Config } from '../config.ts'
import { placeIn } from '../core/call-site.ts'
import { ConfigError } from '../core/errors.ts'
import { failureOf } from '../core/failure.ts'
import { collectHandlers, joinHandlers, type HandlersModule, type LoadedHandlers } from '../docstate/handlers.ts'
import { checkWebhooks, type WebhookSettings } from '../webhooks/bind-webhooks.ts'
import { readJsonHandlers } from '../webhooks/json-handlers.ts'

/**
 * Loads the modules of `SIDECAR_HANDLERS`, TypeScript or JavaScript, and joins their tables.
 *
 * @param paths as given, relative to the working directory
 * @throws ConfigError with a fault for each invalid module
 */
export async function loadHandlers(paths: readonly string[]): Promise<LoadedHandlers> {
  const faults: string[] = []
  const loaded: LoadedHandlers[] = []
  for (const path of paths) {
    try {
      loaded.push(collectHandlers(await importModule(path)))
    } catch (thrown) {
      const reasons = thrown instanceof ConfigError ? thrown.faults : [reasonOf(thrown)]
      faults.push(...reasons.map((reason) => `SIDECAR_HANDLERS: ${path}: ${reason}`))
    }
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return joinHandlers(loaded)
}

/** Like `loadHandlers`; the settings must also allow the webhooks. Throws `ConfigError`. */
export async function loadHandlersFor(config: Pick<Config, 'handlers'> & WebhookSettings): Promise<LoadedHandlers> {
  const handlers = await loadHandlers(config.handlers)
  checkWebhooks(handlers, config)
  return handlers
}

/** Adds what to do: Node names only the importing file, with a suffix of tsx. */
function reasonOf(thrown: unknown): string {
  const { code, reason: text } = failureOf(thrown)
  const place = placeIn((thrown as Error | undefined)?.stack)
  const reason = place === undefined || text.includes(place) ? text : `${text} (${place})`
  const missing = /^Cannot find (?:module|package) '((?!file:)[^./][^']*)'/.exec(text)?.[1]
  if (missing === undefined || !/^(ERR_)?MODULE_NOT_FOUND$/.test(code)) return reason
  return `it imports ${missing}, which is not installed: run "npm install ${missing}" in its folder, or a folder above`
}

const JAVASCRIPT = /\.[cm]?js$/

/** In a folder without `"type": "module"`, TypeScript is CommonJS: its exports are one level deeper. */
type MaybeCommonJs = Partial<HandlersModule> & { readonly default?: Partial<HandlersModule> }

async function importModule(path: string): Promise<HandlersModule> {
  const file = resolve(path)
  await access(file).catch(() => {
    throw new ConfigError([`expected a module, found no file ${file}`])
  })
  if (file.endsWith('.json')) return readJsonHandlers(await readFile(file, 'utf8'))
  const module = (await importAny(pathToFileURL(file).href)) as { default?: MaybeCommonJs }
  const made = module.default?.default ?? module.default
  if (typeof made?.register !== 'function' || typeof made.machines !== 'object') {
    throw new ConfigError(['expected a default export made by defineHandlers(…) of couchdb-sidecar'])
  }
  return made as HandlersModule
}

/** Uses Node's own `import` if possible: tsx starts a thread on Node 20, which takes 50 MB. */
async function importAny(url: string): Promise<unknown> {
  try {
    if (JAVASCRIPT.test(url)) return await import(url)
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw thrown // it imports TypeScript
  }
  const { tsImport } = await import('tsx/esm/api')
  return tsImport(url, import.meta.url)
}
