import { formatLsn, type Lsn } from "#postgres/database";
import { ApiError } from "#runtime";

/** The refusal of a position whose changes are no longer retained. */
export class PositionGoneError extends ApiError {
  /** The first position that is still retained; null if the position is not an earlier one. */
  readonly earliest: Lsn | null;

  constructor(after: Lsn, earliest: Lsn | null) {
    super("gone", "RESOURCE_NOT_FOUND", `The changes since ${formatLsn(after)} are no longer kept.`, {
      hint: "Read the rows again, and follow from now on.",
    });
    this.earliest = earliest;
  }
}
