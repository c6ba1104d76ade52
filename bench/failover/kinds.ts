/** The events that happen to the leader. */
export const KINDS = {
  kill: "Patroni and Postgres are killed",
  successor: "Patroni and Postgres are killed, and those of the next leader while the former one is rewound",
  switchover: "a planned switchover",
  patroni: "Patroni is killed, Postgres goes on",
} as const;

export type Kind = keyof typeof KINDS;

/**
 * The default kinds. They omit `patroni`: without a watchdog, a leader whose Patroni was killed keeps running beside the new one, and
 * acknowledges writes that are lost when Patroni returns.
 */
const IN_TURN: readonly Kind[] = ["kill", "successor", "switchover", "kill"];

export function kindsOf(names: readonly string[]): readonly Kind[] {
  return names.length === 0 ? IN_TURN : (names as readonly Kind[]);
}
