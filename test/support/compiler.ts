import { createCompiler, type Compiler } from '../../sidecar/deploy/compiler.ts'

/** Compiles each folder of design documents once for all tests of this worker process. */
export const compiler: Compiler = createCompiler()
