import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const folder = fileURLToPath(new URL('.', import.meta.url))

/**
 * Bundles the source of a module with all its imports, for browsers. Relative imports start from this folder, and
 * `couchdb-sidecar-client` comes from its TypeScript sources.
 */
export async function bundle(contents: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    ...{ stdin: { contents, resolveDir: folder }, alias: { 'couchdb-sidecar-client': `${folder}../src/index.ts` } },
    ...{ bundle: true, format: 'esm', platform: 'browser', target: 'es2022', define: { global: 'globalThis' } },
    ...{ write: false, minify: true, logLevel: 'warning' },
  })
  return outputFiles[0]!.contents
}
