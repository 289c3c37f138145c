import { relative } from 'node:path'
import { SourceMap, type SourceMapPayload } from 'node:module'
import type { Position } from 'acorn'
import { build, stop, type BuildFailure, type BuildOptions, type Message } from 'esbuild'
import { DeployError, refuseBroken } from './deploy-errors.ts'

/** `es2017`: SpiderMonkey 60 and later, QuickJS, PouchDB. `es5`: SpiderMonkey 1.8.5. */
export type Target = 'es2017' | 'es5'

/**
 * esbuild keeps regular expressions unchanged, so that the parser can refuse newer ones: esbuild would hide them in a
 * string. `**` becomes a call, because CouchDB's escodegen drops its parentheses.
 */
const supported = {
  'exponent-operator': false,
  'regexp-dot-all-flag': true,
  'regexp-lookbehind-assertions': true,
  'regexp-match-indices': true,
  'regexp-named-capture-groups': true,
  'regexp-set-notation': true,
  'regexp-unicode-property-escapes': true,
}

/** A module and all its imports, as one ES module without comments. */
export interface Bundle {
  /** Path of the module for messages, relative to the working directory. */
  readonly file: string
  readonly code: string
  /** Source of a position in `code`: `file:line:column`, or only the file if unknown. */
  placeOf(start: Position | undefined): string
}

/**
 * Bundles each module separately, in one run of esbuild. Call it within `withEsbuild`. Throws `DeployError` with all
 * errors and their positions. Warnings count as errors: they report syntax that the target lacks, or a mistake.
 */
export async function bundleModules(files: readonly string[], target: Target): Promise<Bundle[]> {
  if (files.length === 0) return []
  const result = await run(optionsFor(files, target))
  refuseBroken(result.warnings.map(faultOf))
  const output = new Map(result.outputFiles.map(({ path, text }) => [relative(process.cwd(), path), text]))
  return files.map((file, entry) => {
    const map = new SourceMap(JSON.parse(output.get(`${entry}.js.map`)!) as SourceMapPayload)
    return {
      file: relative(process.cwd(), file),
      code: output.get(`${entry}.js`)!,
      placeOf(start) {
        const origin = start && map.findEntry(start.line - 1, start.column)
        if (!origin || !('originalSource' in origin)) return relative(process.cwd(), file)
        return `${origin.originalSource}:${origin.originalLine + 1}:${origin.originalColumn + 1}`
      },
    }
  })
}

const optionsFor = (files: readonly string[], target: Target) =>
  ({
    entryPoints: files.map((file, entry) => ({ in: file, out: String(entry) })),
    outdir: process.cwd(), // only for the paths in the source maps: nothing is written
    write: false,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    target,
    supported,
    minifyWhitespace: true, // the layout of the source must not change the text
    charset: 'ascii',
    legalComments: 'none',
    sourcemap: 'external',
    sourcesContent: false,
    logLevel: 'silent',
  }) satisfies BuildOptions

async function run(options: ReturnType<typeof optionsFor>) {
  try {
    return await build(options)
  } catch (thrown) {
    if (!isBuildFailure(thrown)) throw thrown
    throw new DeployError('ddocs_broken', thrown.errors.map(faultOf), { cause: thrown })
  }
}

const isBuildFailure = (thrown: unknown): thrown is BuildFailure => thrown instanceof Error && 'errors' in thrown

function faultOf({ location, text }: Message): string {
  return location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text
}

let users = 0

/**
 * Runs work that uses esbuild. esbuild keeps a process for its next use, possibly days later, so the last user stops
 * it. Do not use the synchronous functions of esbuild: they keep a thread with a process of its own, which is not
 * reaped after the stop.
 */
export async function withEsbuild<T>(work: () => Promise<T>): Promise<T> {
  users += 1
  try {
    return await work()
  } finally {
    users -= 1
    if (users === 0) await stop()
  }
}
