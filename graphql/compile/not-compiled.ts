/** Why an operation does not run as one statement. */
export type NotCompiledReason =
  | "introspection"
  | "field"
  | "type"
  | "value"
  | "argument"
  | "size"
  | "limit"
  | "refused";

/** Thrown for an operation that is not made of what the compiler knows. */
export class NotCompiled extends Error {
  override name = "NotCompiled";
  readonly reason: NotCompiledReason;

  constructor(reason: NotCompiledReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}
