import { ExplainedError } from "#runtime";
import type { SampleOptions } from "./archive/row-sample.ts";

export type BranchOptions = {
  readonly schemaOnly: boolean;
  /** The rows to copy; null for all. */
  readonly sample: SampleOptions | null;
  /** True if values are replaced according to the comments of columns. */
  readonly isAnonymized: boolean;
};

/** The options in the form of the command line or of a request. */
export type BranchRequest = {
  readonly schemaOnly: boolean;
  /** A share such as `0.5%`. */
  readonly sample: string | null;
  readonly seed: string | null;
  readonly isAnonymized: boolean;
};

export class BranchOptionsError extends ExplainedError {}

export function parseBranchOptions({ schemaOnly, sample, seed, isAnonymized }: BranchRequest): BranchOptions {
  if (schemaOnly && (sample !== null || isAnonymized))
    throw new BranchOptionsError("A branch without rows has none to choose or anonymize.");
  return { schemaOnly, sample: parseSample(sample, seed), isAnonymized };
}

const SHARE = /^(\d{1,3}(?:\.\d{1,9})?)%$/;

function parseSample(text: string | null, seed: string | null): SampleOptions | null {
  if (text === null) {
    if (seed !== null) throw new BranchOptionsError("A seed belongs to a sample.");
    return null;
  }
  const share = Number(SHARE.exec(text)?.[1]) / 100;
  if (!(share > 0 && share <= 1)) throw new BranchOptionsError("A sample is a percentage above 0, such as 0.5%.");
  if (!/^\d{1,9}$/.test(seed ?? "0")) throw new BranchOptionsError("A seed is a number of at most nine digits.");
  return { share, seed: Number(seed ?? 0) };
}
