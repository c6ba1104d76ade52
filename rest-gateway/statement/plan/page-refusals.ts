import { ApiError } from "../../../engine/errors.ts";

export function unreadableCursor(): ApiError {
  return new ApiError(400, "PGRST190", "The cursor cannot be read", {
    details: "It was cut off or changed, or it is none of this interface.",
    hint: "Take it from the Link header of the page before, as it is; an empty cursor gives the first page.",
  });
}

export function foreignCursor(): ApiError {
  return new ApiError(400, "PGRST191", "The cursor belongs to other rows or to another order", {
    hint: "Keep the table and the order of the first page; an empty cursor gives the first page.",
  });
}

export function noPage(details: string): ApiError {
  return new ApiError(400, "PGRST192", "A cursor is not possible here", { details });
}

/** Rows in the same place: which of them were on the page before could not be told. */
export function noTotalOrder(details: string): ApiError {
  return new ApiError(400, "PGRST193", "The order does not tell all rows apart", {
    details,
    hint: "Order by columns that are never the same in two rows.",
  });
}
