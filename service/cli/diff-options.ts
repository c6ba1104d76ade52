import { UsageError } from "./command/command.ts";

/** The exit code of `migrate diff` if a change is at least as severe as --fail-on. */
export const EXIT_CHANGED = 3;

/** `used`: a breaking change that recorded requests use. */
const FAIL_LEVELS = ["breaking", "dangerous", "used"] as const;

export type DiffOptions = {
  /** The file for a snapshot of the database; if set, nothing is compared. */
  readonly save: string | null;
  /** The file of a snapshot, which is compared in place of the database. */
  readonly against: string | null;
  readonly failOn: (typeof FAIL_LEVELS)[number] | null;
  readonly json: boolean;
};

export const DIFF_OPTIONS = {
  save: { type: "string" },
  against: { type: "string" },
  "fail-on": { type: "string" },
  json: { type: "boolean" },
} as const;

export function parseDiffOptions(options: Readonly<Record<string, unknown>>): DiffOptions {
  const { save, against, "fail-on": failOn, json } = options;
  if (save !== undefined && (against ?? failOn ?? json) !== undefined)
    throw new UsageError("--save writes a snapshot and compares nothing: omit the other options.");
  const level = FAIL_LEVELS.find((each) => each === failOn) ?? null;
  if (failOn !== undefined && level === null) throw new UsageError(`--fail-on must be breaking, dangerous or used.`);
  return {
    save: save === undefined ? null : String(save),
    against: against === undefined ? null : String(against),
    failOn: level,
    json: json === true,
  };
}
