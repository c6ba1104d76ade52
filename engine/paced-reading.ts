import { afterLightTurns } from "./after-turns.ts";

/** Of all connections together, so much is read in some turns of the event loop. */
const BYTES_PER_TURN = 256 * 1024;
/** At most so much comes in one piece from a socket. */
const BYTES_PER_PIECE = 64 * 1024;
/** Shorter pieces are not counted: nearly all requests and messages are. */
const LEAST_BYTES = 16 * 1024;

/** Something that brings pieces while it is not paused, such as a socket. */
export type Source = { pause(): void; resume(): void };

let bytesLeft = BYTES_PER_TURN;
let isTurning = false;
/** In the order in which they are read again. */
const waiting: Source[] = [];

/**
 * To be called with each piece that a source has brought. When much was read in these turns of the event loop, the source is paused
 * until its turn comes: otherwise a few dozen connections that send as fast as they can hold the loop for as long as
 * it takes to handle megabytes of each.
 */
export function paceReading(source: Source, bytes: number): void {
  if (bytes < LEAST_BYTES) return;
  bytesLeft -= bytes;
  if (!isTurning) {
    isTurning = true;
    afterLightTurns(nextTurn);
  }
  if (bytesLeft > 0) return;
  source.pause();
  waiting.push(source);
}

function nextTurn(): void {
  isTurning = waiting.length > 0;
  bytesLeft = BYTES_PER_TURN;
  if (!isTurning) return;
  for (const source of waiting.splice(0, BYTES_PER_TURN / BYTES_PER_PIECE)) source.resume();
  afterLightTurns(nextTurn);
}
