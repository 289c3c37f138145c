import { ConfigError } from '../core/errors.ts'

/**
 * Loads an optional dependency; where it is not installed, throws a `ConfigError` that names the setting which makes
 * it superfluous. `load` imports (or resolves) it: what runs in production never gets as far as this.
 */
export async function loadOptional<T>(name: string, setting: string, load: () => T | Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (thrown) {
    if (!isMissing(thrown)) throw thrown
    throw new ConfigError([
      `${setting}: expected a URL, got nothing, and ${name}, which would stand in for it, is not installed: ` +
        `npm install ${name}, or set ${setting}`,
    ])
  }
}

const isMissing = (thrown: unknown): boolean =>
  thrown instanceof Error &&
  'code' in thrown &&
  (thrown.code === 'MODULE_NOT_FOUND' || thrown.code === 'ERR_MODULE_NOT_FOUND')
