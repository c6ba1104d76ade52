/** What happens to the leader. */
export const KINDS = {
  kill: "Patroni and Postgres are killed",
  successor: "Patroni and Postgres are killed, and those of the next leader while the former one is rewound",
  switchover: "a planned switchover",
  patroni: "Patroni is killed, Postgres goes on",
} as const;

export type Kind = keyof typeof KINDS;

/**
 * Without a watchdog a leader whose Patroni was killed goes on beside the new one, and acknowledges writes that are lost when Patroni
 * returns: only for those who ask for it.
 */
const IN_TURN: readonly Kind[] = ["kill", "successor", "switchover", "kill"];

export function kindsOf(names: readonly string[]): readonly Kind[] {
  return names.length === 0 ? IN_TURN : (names as readonly Kind[]);
}
