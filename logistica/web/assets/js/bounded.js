// A map that forgets its oldest entry: a page open for a week must not grow.
export class Bounded extends Map {
  constructor(limit) {
    super();
    this.limit = limit;
  }

  set(key, value) {
    super.delete(key);
    super.set(key, value);
    if (this.size > this.limit) super.delete(this.keys().next().value);
    return this;
  }
}
