/**
 * In a turn of the event loop one connection is accepted, and a request goes one step on. Between two pieces of long work there
 * are so many turns without any: else a thousand connections would wait for as many pieces.
 */
const LIGHT_TURNS = 8;

/** Calls back when others have had some turns of the event loop. */
export function afterLightTurns(callback: () => void, turns = LIGHT_TURNS): void {
  setImmediate(() => {
    if (turns <= 1) callback();
    else afterLightTurns(callback, turns - 1);
  });
}
