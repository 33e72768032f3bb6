"""Builds the compiled scanner where a C compiler is there; without one the portable scanner serves."""

from setuptools import Extension, setup

try:
    from Cython.Build import cythonize
except ImportError:
    modules = []
else:
    scan = Extension("uncork.readers.scan", ["src/uncork/readers/scan.pyx"], optional=True)
    modules = cythonize([scan], language_level=3)

setup(ext_modules=modules)
