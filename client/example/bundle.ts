import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const folder = fileURLToPath(new URL('.', import.meta.url))

/**
 * A module for browsers with all that it imports, from its source as it would stand in this folder.
 * `couchdb-sidecar-client` is taken from its sources.
 */
export async function bundle(contents: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    ...{ stdin: { contents, resolveDir: folder }, alias: { 'couchdb-sidecar-client': `${folder}../src/index.ts` } },
    ...{ bundle: true, format: 'esm', platform: 'browser', target: 'es2022', define: { global: 'globalThis' } },
    ...{ write: false, minify: true, logLevel: 'warning' },
  })
  return outputFiles[0]!.contents
}
