declare const brand: unique symbol

/**
 * A string of one meaning, which only the function that makes it can give. The compiler refuses any other string in its
 * place: what a client wrote is not taken for what we have checked or made.
 */
export type Brand<Name extends string> = string & { readonly [brand]: Name }
