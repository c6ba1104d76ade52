import { canonical, type Json } from "./exact.ts";

export type Interface = "table" | "resource" | "graphql" | "realtime";

export type Difference = {
  readonly interface: Interface;
  /** `users.id`, `users -> tenants`, `enqueue(text)` */
  readonly subject: string;
  /** `rows`, `filter`, `embedding` */
  readonly check: string;
  readonly expected: string;
  readonly got: string;
};

/** The number of comparisons, and their differences. */
export class Findings {
  readonly differences: Difference[] = [];
  readonly #counts = new Map<Interface, number>();

  compare(
    where: Interface,
    subject: string,
    check: string,
    expected: Json | undefined,
    got: Json | undefined,
  ): boolean {
    const [one, other] = [canonical(expected), canonical(got)];
    return this.note(where, subject, check, one === other, one, other);
  }

  note(where: Interface, subject: string, check: string, isRight: boolean, expected: string, got: string): boolean {
    this.#counts.set(where, (this.#counts.get(where) ?? 0) + 1);
    if (!isRight)
      this.differences.push({
        interface: where,
        subject,
        check,
        expected: expected.slice(0, 300),
        got: got.slice(0, 300),
      });
    return isRight;
  }

  get counts(): Readonly<Record<Interface, number>> {
    const of = (where: Interface) => this.#counts.get(where) ?? 0;
    return { table: of("table"), resource: of("resource"), graphql: of("graphql"), realtime: of("realtime") };
  }
}
