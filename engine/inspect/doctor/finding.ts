/** Something to mend, and how. */
export type Finding = {
  /** `danger`: rows or rights are open that should not be. `slow`: it works, and could be faster. */
  readonly kind: "danger" | "slow" | "advice";
  readonly what: string;
  /** SQL, or a setting. */
  readonly fix: string;
};
