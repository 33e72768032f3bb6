// Round distances for scales.

/** Returns a round distance of ticks not below a value. */
export function niceTick(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return power * ([1, 2, 2.5, 5, 10].find(step => step * power >= least) ?? 10);
}

/** Returns a power of two not below a value: sizes are read in binary units. */
export function binaryTick(least: number): number {
  let tick = 1;
  while (tick < least) tick *= 2;
  return tick;
}

/** Returns the ticks from 0 to a value, the last at or above it where `over`, else at or below. */
export function ticks(most: number, tick: number, over = true): number[] {
  const count = (over ? Math.ceil(most / tick) : Math.floor(most / tick)) + 1;
  return Array.from({ length: count }, (_, i) => i * tick);
}
