/** The stages of one request and how long each took, for the Server-Timing header. */
export type Stages = {
  /** Ends the stage before and begins this one. */
  enter(name: string): void;
  /** `parse;dur=0.1, run;dur=1.9` */
  header(): string;
};

export function makeStages(): Stages {
  const taken: { name: string; milliseconds: number }[] = [];
  let current: { name: string; since: number } | null = null;
  const leave = () => {
    if (current) taken.push({ name: current.name, milliseconds: performance.now() - current.since });
    current = null;
  };
  return {
    enter(name) {
      leave();
      current = { name, since: performance.now() };
    },
    header() {
      leave();
      return taken.map(({ name, milliseconds }) => `${name};dur=${milliseconds.toFixed(1)}`).join(", ");
    },
  };
}

/** When nobody wants to know. */
export const NO_STAGES: Stages = { enter: () => {}, header: () => "" };
